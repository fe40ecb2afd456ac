import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { commandIn, Program } from '../../src/clusters/program.ts'
import { folder } from './kubeconfigs.ts'

/** A program made of a script; `pids` is where the script may note processes. */
async function program(script: string, deadline?: number) {
  const dir = await folder()
  const command = join(dir, 'program')
  const pids = join(dir, 'pids')
  await writeFile(command, `#!/bin/sh\n${script.replaceAll('PIDS', pids)}\n`, { mode: 0o755 })
  return {
    program: new Program({ command, args: [], env: { SAID: 'by the kubeconfig' } }, deadline),
    pids: async () => (await readFile(pids, 'utf8')).trim().split('\n').map(Number),
  }
}

function lives(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const handing = (status: object) => `echo '${JSON.stringify({ kind: 'ExecCredential', status })}'`

test('a program that hangs is killed at the deadline, with what it started, whatever signals it ignores', async () => {
  const { program: hanging, pids } = await program(
    "trap '' TERM INT HUP; echo $$ > PIDS; sleep 600 & echo $! >> PIDS; wait; wait",
    1_000,
  )
  await expect(hanging.credential()).rejects.toThrow('took longer than 1000 ms, and was killed')
  const started = await pids()
  expect(started).toHaveLength(2)
  await expect.poll(() => started.filter(lives)).toEqual([])
})

test('a program that waits for somebody to type hears at once that nobody does', async () => {
  const { program: asking } = await program(
    `read answer || ${handing({ token: 'without' })}`,
    60_000,
  )
  expect(await asking.credential()).toEqual({ token: 'without' })
})

test('a program that never stops talking is killed', async () => {
  const { program: talking, pids } = await program('echo $$ > PIDS; yes', 60_000)
  await expect(talking.credential()).rejects.toThrow('said too much, and was killed')
  const started = await pids()
  await expect.poll(() => started.filter(lives)).toEqual([])
})

test.each([
  ['fails', 'echo no such user >&2; exit 3', /ended with 3: no such user$/],
  ['is killed by somebody', 'kill -9 $$', /ended with SIGKILL/],
  ['says something else', 'echo hello', /something else than JSON/],
  ['hands out nothing', "echo '{}'", /handed out no credential/],
])('a program that %s says so', async (_, script, message) => {
  const { program: failing } = await program(script)
  await expect(failing.credential()).rejects.toThrow(message)
})

test('a program that is not there says so', async () => {
  const missing = new Program({ command: '/nowhere/program', args: [], env: {} })
  await expect(missing.credential()).rejects.toThrow("/nowhere/program can't be run")
})

test('a program is given the arguments and the environment of the kubeconfig', async () => {
  const exec = {
    command: 'sh',
    args: ['-c', handing({ token: 'TOKEN' }).replace('TOKEN', `'"$SAID"'`)],
    env: [{ name: 'SAID', value: 'hello' }],
  }
  const command = commandIn(exec)
  if (command === undefined) throw new Error('that is a command')
  expect(await new Program(command).credential()).toEqual({ token: 'hello' })
  expect(commandIn(undefined)).toBeUndefined()
  expect(commandIn({ args: [] })).toBeUndefined()
})
