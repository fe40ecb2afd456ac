import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { basename } from 'node:path'

/** A program that runs until it is stopped or this process is gone, whatever ends that. */
export type Program = {
  pid: number
  running(): boolean
  /** Resolves when it has ended, asked or not. */
  ended: Promise<void>
  stop(): Promise<void>
  /** The end of what it wrote. */
  lastLines(): string
}

/** Starts a program whose output goes to the file `log`. */
export async function startProgram(options: {
  file: string
  args: string[]
  folder: string
  log: string
  /** A folder that goes with this process, where that is killed before it can remove it. */
  doomed?: string | undefined
}): Promise<Program> {
  const log = openSync(options.log, 'a', 0o600)
  // A session of its own: Ctrl-C in the terminal is for us, and clients are closed before it.
  const child = spawn(options.file, options.args, {
    cwd: options.folder,
    detached: true,
    stdio: ['ignore', log, log],
  })
  closeSync(log)
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', reject)
  })
  const { pid } = child
  if (pid === undefined) throw new Error(`${options.file} was started without a process id`)
  guard(child, options.doomed ?? '')
  const running = () => child.exitCode === null && child.signalCode === null
  return {
    pid,
    running,
    ended,
    // In order, kube-apiserver takes a second. Neither keeps anything that a kill would lose.
    stop: () => {
      child.kill('SIGKILL')
      return ended
    },
    lastLines: () => {
      const lines = readFileSync(options.log, 'utf8').trimEnd().split('\n').slice(-8)
      return `${basename(options.file)}: ${lines.join('\n')}`
    },
  }
}

/** Ends the program when this process is gone, also by SIGKILL: its end of the pipe then closes. */
function guard(child: ChildProcess, doomed: string): void {
  const script = 'read -r _; kill -KILL "$1"; [ -z "$2" ] || { sleep 1; rm -rf "$2"; }'
  const watcher = spawn('/bin/sh', ['-c', script, 'sh', String(child.pid), doomed], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  watcher.unref()
  if (watcher.stdin instanceof Socket) watcher.stdin.unref()
  child.once('exit', () => watcher.kill('SIGKILL'))
}
