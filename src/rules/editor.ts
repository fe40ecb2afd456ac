import { FIELD_MANAGER, type NetworkRule } from './objects.ts'

/** Who owns which fields of an object, as API servers keep it with every object. */
type ManagedFields = { manager?: unknown; fieldsV1?: unknown }

/**
 * Who else owns fields of a rule's spec: our applies take back what they send, so there is such a one
 * only from an edit by somebody else until we have put it right. undefined: nobody.
 */
export const editorOf = ({ metadata }: Pick<NetworkRule, 'metadata'>): string | undefined => {
  const all: unknown = Reflect.get(metadata, 'managedFields')
  if (!Array.isArray(all)) return undefined
  const editor = all.find(
    ({ manager, fieldsV1 }: ManagedFields) =>
      manager !== FIELD_MANAGER && isObject(fieldsV1) && 'f:spec' in fieldsV1,
  )
  return editor && typeof editor.manager === 'string' ? editor.manager : undefined
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
