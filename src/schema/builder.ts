import SchemaBuilder from '@pothos/core'
import RelayPlugin from '@pothos/plugin-relay'
import type { Checked } from '../domain/input.ts'
import './audience.ts'
import type { Context } from './context.ts'

type Text = { Input: Checked<string>; Output: string }

/** The one builder; every type and root field registers with it when its file is loaded. */
export const builder = new SchemaBuilder<{
  Context: Context
  DefaultFieldNullability: false
  DefaultEdgesNullability: false
  DefaultNodeNullability: false
  Connection: { total: (() => Promise<number> | number) | null }
  Scalars: {
    ID: { Input: string; Output: string }
    DateTime: Text
    IPAddress: Text
    IPv4Address: Text
    IPPrefix: Text
    ResourceName: Text
    LogCursor: Text
    Port: { Input: Checked<number>; Output: number }
  }
}>({
  plugins: ['audience', RelayPlugin],
  defaultFieldNullability: false,
  relay: {
    // Ids, Node and its two queries are ours (ids.ts, node.ts): the plugin's throw at an id that
    // names nothing, and wait where there is nothing to wait for.
    nodeQueryOptions: false,
    nodesQueryOptions: false,
    cursorType: 'String',
    nodesOnConnection: { description: 'The objects of this page, without their cursors.' },
    edgesFieldOptions: {
      nullable: false,
      description: 'The objects of this page, each with its cursor.',
    },
    nodeFieldOptions: { nullable: false, description: 'The object itself.' },
    cursorFieldOptions: {
      description: 'Where this object stands in the list; pass it as `after` or `before`.',
    },
    pageInfoFieldOptions: { description: 'Whether there is more, and from where to go on.' },
    pageInfoTypeOptions: {
      description: 'Where a page stands in its list.',
    },
    hasNextPageFieldOptions: { description: 'Whether more objects follow this page.' },
    hasPreviousPageFieldOptions: { description: 'Whether objects come before this page.' },
    startCursorFieldOptions: {
      description: 'The cursor of the first object of the page; null on an empty page.',
    },
    endCursorFieldOptions: {
      description:
        'The cursor of the last object of the page: pass it as `after` to get the next one. Null on an empty page.',
    },
  },
})

/** The builder's own settings, for functions over its fields and arguments. */
export type BuilderTypes =
  typeof builder extends PothosSchemaTypes.SchemaBuilder<infer Types> ? Types : never
