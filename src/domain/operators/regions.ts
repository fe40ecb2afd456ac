import type { Store } from '../../db/client.ts'
import { violatedConstraint } from '../../db/failure.ts'
import { newId } from '../ids.ts'
import { invalidValues, type ValidationIssue } from '../input.ts'
import { NameTaken, NotFound, type Refusal, ValidationFailed } from '../refusals.ts'

/** A region's code is part of addresses and command lines. */
const CODE = /^[a-z][a-z0-9-]{0,61}[a-z0-9]$/
const CITY = /^[A-Z]{3}$/

/** Makes a region; its code is unique and never changes. */
export async function createRegion(
  store: Store,
  input: { code: string; displayName: string; cityCode: string },
): Promise<{ region: { id: string } } | Refusal> {
  const issues = invalidValues(input)
  if (!CODE.test(input.code)) {
    issues.push(
      issue('INVALID_CODE', 'A code has 2 to 63 lower-case letters, digits and hyphens.', 'code'),
    )
  }
  if (!CITY.test(input.cityCode)) {
    issues.push(issue('INVALID_CITY_CODE', 'A city code is three capital letters.', 'cityCode'))
  }
  if (input.displayName === '' || input.displayName.length > 200) {
    issues.push(issue('TOO_LONG', 'A display name has 1 to 200 characters.', 'displayName'))
  }
  if (issues.length > 0) return new ValidationFailed(issues)
  try {
    const id = newId()
    await store.prisma.region.create({ data: { id, ...input } })
    return { region: { id } }
  } catch (error) {
    if (violatedConstraint(error) !== 'region_code_key') throw error
    return new NameTaken({
      message: `There is a region "${input.code}" already.`,
      path: ['code'],
      takenName: input.code,
    })
  }
}

/** The id of the region with that code; what isn't a code is no region's. */
export async function findRegion(store: Store, code: string): Promise<string | null> {
  if (!CODE.test(code)) return null
  const region = await store.prisma.region.findUnique({ where: { code }, select: { id: true } })
  return region?.id ?? null
}

/** No region of that code. */
export const noRegion = (code: string): NotFound =>
  new NotFound({
    message: `There is no region "${code}".`,
    path: ['region'],
    hint: 'List the regions by the query regions.',
    missingId: null,
  })

const issue = (code: string, message: string, field: string): ValidationIssue => ({
  code,
  message,
  path: [field],
  suggestion: null,
})
