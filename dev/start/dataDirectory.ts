import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** Where the demo keeps its things, all under one directory. */
export type DataDirectory = { root: string; postgres: string }

export async function openDataDirectory(root: string): Promise<DataDirectory> {
  await mkdir(root, { recursive: true })
  return { root, postgres: join(root, 'postgres') }
}

const OURS = /^(postgres(\..*)?|clusters|kubeconfig(\..*)?|endpoints\.json)$/

/**
 * Takes the directory for this process: two that write into it would take each other's clusters away.
 * Answers the process that has it, or how it is given back.
 */
export function holdData({ root }: DataDirectory): { heldBy: number } | (() => void) {
  const file = join(root, 'running')
  const holder = Number.parseInt(readIfThere(file), 10)
  if (holder !== process.pid && isDemo(holder)) return { heldBy: holder }
  writeFileSync(file, String(process.pid))
  return () => rmSync(file, { force: true })
}

/** Whether a process is one of ours still: the number of one that was killed may be another's by now. */
function isDemo(pid: number): boolean {
  if (!Number.isInteger(pid)) return false
  if (process.platform === 'linux') {
    return readIfThere(`/proc/${pid}/cmdline`).includes('dev/main.ts')
  }
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT' || code === 'ESRCH') return ''
    throw error
  }
}

/** Removes what earlier runs of the demo made, and nothing else that may lie there. */
export async function removeData({ root }: DataDirectory): Promise<void> {
  const names = await readdir(root)
  await Promise.all(
    names
      .filter((name) => OURS.test(name))
      .map((name) => rm(join(root, name), { recursive: true, force: true })),
  )
}
