import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { clearDataDirectory } from '../postmaster.ts'

/** Where the demo keeps its things, all under one directory. */
export type DataDirectory = { root: string; postgres: string }

export async function openDataDirectory(root: string): Promise<DataDirectory> {
  await mkdir(root, { recursive: true })
  return { root, postgres: join(root, 'postgres') }
}

const OURS = /^(postgres(\..*)?|clusters|kubeconfig(\..*)?|endpoints\.json)$/

/**
 * Removes what earlier runs of the demo made, and nothing else that may lie there. Throws where a run
 * that is still going on uses it.
 */
export async function removeData({ root, postgres }: DataDirectory): Promise<void> {
  await clearDataDirectory(postgres)
  const names = await readdir(root)
  await Promise.all(
    names
      .filter((name) => OURS.test(name))
      .map((name) => rm(join(root, name), { recursive: true, force: true })),
  )
}
