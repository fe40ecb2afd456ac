import { spawnSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'

/** A user that PostgreSQL can run as where we are root, which it refuses. */
export type Account = { name: string; uid: number; gid: number }

/** What `spawn` needs to start one program as an account. */
export type Launch = { file: string; args: string[]; ids: { uid?: number; gid?: number } }

/** Builds the launch of one program; made by `launcher`. */
export type Launcher = (file: string, args: string[]) => Launch

/**
 * The account that owns the data in `directory`, or would if it were made now. Undefined where we
 * aren't root: then everything runs as ourselves. Data made by an ordinary user keep their owner,
 * so that the same checkout can be used as root one day and as that user the next.
 */
export function accountFor(directory: string): Account | undefined {
  const owner = statSync(directory, { throwIfNoEntry: false })
  const self = process.getuid?.()
  if (self !== 0) {
    if (owner === undefined || self === undefined || owner.uid === self) return undefined
    throw new Error(
      `${directory} belongs to another user (uid ${owner.uid}): run this as that user or remove the directory`,
    )
  }
  const accounts = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .map(([name = '', , uid, gid]) => ({ name, uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 }))
  if (owner !== undefined && owner.uid !== 0) {
    const name = accounts.find((account) => account.uid === owner.uid)?.name
    return { name: name ?? `uid ${owner.uid}`, uid: owner.uid, gid: owner.gid }
  }
  const found =
    accounts.find((account) => account.name === 'postgres') ??
    accounts.find((account) => account.name === 'nobody')
  if (found === undefined || found.uid === 0) {
    throw new Error(
      'PostgreSQL refuses to run as root, and /etc/passwd has neither a user postgres nor nobody: run this as an ordinary user',
    )
  }
  return found
}

/**
 * How programs are started as `account`, tried on `program` and `directory` (which exists and
 * belongs to the account). Where a directory above them is closed to the account (a checkout
 * under /root, a `mktemp -d`), the program keeps one capability of root's, to pass closed doors.
 * PostgreSQL looks for its own files by access(2), which ignores capabilities of other users than
 * root unless the secure bit no_setuid_fixup is set (tried: without it initdb says "invalid binary").
 */
export function launcher(
  account: Account | undefined,
  program: string,
  directory: string,
): Launcher {
  if (account === undefined) return (file, args) => ({ file, args, ids: {} })
  const ids = { uid: account.uid, gid: account.gid }
  const plain: Launcher = (file, args) => ({ file, args, ids })
  const privileged: Launcher = (file, args) => ({
    file: 'setpriv',
    args: [
      ...['--reuid', String(account.uid), '--regid', String(account.gid), '--clear-groups'],
      ...['--securebits', '+no_setuid_fixup'],
      ...['--inh-caps', '+dac_override', '--ambient-caps', '+dac_override'],
      file,
      ...args,
    ],
    ids: {},
  })
  for (const launch of [plain, privileged]) {
    // The shell enters the directory after it has become the account: spawn's own cwd is entered before.
    const trial = launch('/bin/sh', [
      ...['-c', 'cd "$1" && exec "$2" --version', 'sh'],
      directory,
      program,
    ])
    const { status } = spawnSync(trial.file, trial.args, { ...trial.ids, cwd: '/' })
    if (status === 0) return launch
  }
  throw new Error(
    `PostgreSQL refuses to run as root, and user ${account.name} can't reach ${directory} and ${program}: open the directories above them (chmod o+x), move the checkout, or run this as an ordinary user`,
  )
}
