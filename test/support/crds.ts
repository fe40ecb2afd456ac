import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const OWN = fileURLToPath(new URL('../../dev/crds/', import.meta.url))

/** The YAML texts in a folder. */
export async function yamlTexts(folder: string): Promise<string[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.yaml')).sort()
  return Promise.all(names.map((name) => readFile(`${folder}/${name}`, 'utf8')))
}

/** Our CRDs, with today's NetworkRule. */
export const ownCrds = (): Promise<string[]> => yamlTexts(OWN)

/** The later NetworkRule, which takes the place of today's. */
export const selectorCrd = (): Promise<string> =>
  readFile(`${OWN}/selector/networkrules.yaml`, 'utf8')
