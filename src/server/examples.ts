import { readFile } from 'node:fs/promises'

/** One operation that GraphiQL has ready in a tab. */
export type Example = { query: string; variables?: string; headers?: string }

const OPERATIONS = new URL('../../docs/operations/', import.meta.url)

/** The operations of docs/api.md, in its order; none where the documents aren't there. */
export async function readExamples(): Promise<Example[]> {
  try {
    const listed: unknown = JSON.parse(await read('examples.json'))
    if (!Array.isArray(listed)) return []
    return await Promise.all(listed.map(exampleOf))
  } catch (error) {
    // Who leaves the documents out of what is installed does without.
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}

async function exampleOf({
  file,
  variables,
}: {
  file: string
  variables: unknown
}): Promise<Example> {
  return { query: await read(file), variables: JSON.stringify(variables, null, 2) }
}

const read = (name: string): Promise<string> => readFile(new URL(name, OPERATIONS), 'utf8')
