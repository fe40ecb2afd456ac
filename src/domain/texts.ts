/** Rules for what people write about their objects, the same for all kinds. */
import type { ValidationIssue } from './input.ts'
import type { Label } from './records.ts'

/** In characters. */
const LONGEST = { displayName: 200, description: 2_000, labelKey: 128, labelValue: 256 }
const MOST_LABELS = 50
// biome's rule aside, control characters are just what is looked for.
const CONTROL = /\p{Cc}/u

type Texts = {
  displayName?: string | null | undefined
  description?: string | null | undefined
  labels?: Label[] | null | undefined
}

/** What is wrong with names for people, descriptions and labels. */
export function textIssues(texts: Texts): ValidationIssue[] {
  return [
    ...lengthIssues('displayName', texts.displayName, LONGEST.displayName),
    ...lengthIssues('description', texts.description, LONGEST.description),
    ...labelIssues(texts.labels ?? []),
  ]
}

function lengthIssues(field: string, text: string | null | undefined, longest: number) {
  if (text === null || text === undefined) return []
  if ([...text].length > longest) {
    return [issue('TOO_LONG', `At most ${longest} characters are kept.`, [field])]
  }
  if (field === 'displayName' && CONTROL.test(text)) {
    return [issue('INVALID_TEXT', 'Line breaks and control characters are not kept here.', [field])]
  }
  return []
}

function labelIssues(labels: Label[]): ValidationIssue[] {
  const issues: ValidationIssue[] = []
  if (labels.length > MOST_LABELS) {
    issues.push(issue('TOO_MANY', `At most ${MOST_LABELS} labels are kept.`, ['labels']))
  }
  const seen = new Set<string>()
  labels.forEach(({ key, value }, index) => {
    const path = ['labels', String(index)]
    if (key === '' || [...key].length > LONGEST.labelKey || CONTROL.test(key)) {
      issues.push(
        issue('INVALID_LABEL', `A label's key has 1 to ${LONGEST.labelKey} printable characters.`, [
          ...path,
          'key',
        ]),
      )
    }
    if ([...value].length > LONGEST.labelValue || CONTROL.test(value)) {
      issues.push(
        issue(
          'INVALID_LABEL',
          `A label's value has at most ${LONGEST.labelValue} printable characters.`,
          [...path, 'value'],
        ),
      )
    }
    if (seen.has(key)) {
      issues.push(issue('DUPLICATE', `The key "${key}" is given twice.`, [...path, 'key']))
    }
    seen.add(key)
  })
  return issues
}

/** A key under which a create may be repeated. */
export function idempotencyKeyIssues(key: string | null | undefined): ValidationIssue[] {
  if (key === null || key === undefined) return []
  if (key !== '' && key.length <= 128 && !CONTROL.test(key)) return []
  return [
    issue('INVALID_KEY', 'An idempotency key has 1 to 128 printable characters.', [
      'idempotencyKey',
    ]),
  ]
}

const issue = (code: string, message: string, path: string[]): ValidationIssue => ({
  code,
  message,
  path,
  suggestion: null,
})
