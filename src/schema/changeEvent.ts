import { listEvents } from '../domain/events/read.ts'
import type { Actor as ActorRecord, EventRecord } from '../domain/records.ts'
import { builder } from './builder.ts'
import { type Context, requirePermission } from './context.ts'
import { decodeId, globalId, NOTHING } from './ids.ts'
import { Node } from './node.ts'
import { connection, type PageArgs, pageRequest } from './pages.ts'
import { filterOf } from './valid.ts'

const ActorKind = builder.enumType('ActorKind', {
  description: 'What sort of actor made a change.',
  values: {
    USER: { description: 'A person.' },
    SERVICE_ACCOUNT: { description: 'A program of a project.' },
    OPERATOR: { description: 'Somebody who runs the platform.' },
    SYSTEM: { description: 'The platform itself, e.g. after a health check failed.' },
  } as const,
})

const Actor = builder.objectRef<ActorRecord>('Actor')

Actor.implement({
  description: 'Who made a change.',
  fields: (t) => ({
    kind: t.expose('kind', { type: ActorKind, description: 'What sort of actor it is.' }),
    name: t.exposeString('name', { description: 'Who it is, e.g. a mail address.' }),
  }),
})

export const FieldChange = builder.objectRef<EventRecord['changes'][number]>('FieldChange')

FieldChange.implement({
  description: 'One field that a change set to another value.',
  fields: (t) => ({
    path: t.exposeStringList('path', {
      description: 'Leads to the field from the object, e.g. `["healthCheck", "rise"]`.',
    }),
    before: t.exposeString('before', {
      nullable: true,
      description: 'The value before, as text; null where there was none.',
    }),
    after: t.exposeString('after', {
      nullable: true,
      description: 'The value since, as text; null where there is none.',
    }),
  }),
})

export const ChangeEvent = builder.objectRef<EventRecord>('ChangeEvent')

ChangeEvent.implement({
  description: 'One change that was made, by whomever: an entry in the log of a project.',
  interfaces: [Node],
  fields: (t) => ({
    id: t.id({
      description: 'Names this event among all objects of the API.',
      resolve: ({ id }) => globalId('ChangeEvent', id),
    }),
    cursor: t.expose('cursor', {
      type: 'LogCursor',
      description: 'Its place in the log: a place to start watching from.',
    }),
    at: t.expose('at', { type: 'DateTime', description: 'When it was made.' }),
    reason: t.exposeString('reason', {
      description:
        'What happened, as one word in CamelCase for programs, e.g. `LoadBalancerCreated` or `BackendUnhealthy`.',
    }),
    message: t.exposeString('message', { description: 'What happened, in words for people.' }),
    actor: t.expose('actor', { type: Actor, description: 'Who made the change.' }),
    objectId: t.id({
      description: 'The id of the object that was changed.',
      resolve: ({ objectKind, objectId }) => globalId(objectKind, objectId),
    }),
    object: t.field({
      type: Node,
      nullable: true,
      description: 'The object that was changed, as it is now; null once it is gone.',
      resolve: ({ objectKind, objectId }, _args, context) => {
        if (objectKind === 'LoadBalancer') {
          requirePermission(context, 'loadbalancers.get')
          return context.loaders.loadBalancers.load(objectId)
        }
        requirePermission(context, 'ipv4reservations.get')
        return context.loaders.reservations.load(objectId)
      },
    }),
    generation: t.exposeInt('generation', {
      description: "The object's generation after the change.",
    }),
    changes: t.expose('changes', {
      type: [FieldChange],
      description: 'The fields that were set to another value, in a stable order.',
    }),
  }),
})

export const ChangeEventConnection = builder.connectionObject(
  { type: ChangeEvent, name: 'ChangeEventConnection', description: 'A page of events.' },
  { name: 'ChangeEventEdge', description: 'An event and its place in the list.' },
)

export const EventFilter = builder.inputType('EventFilter', {
  description: 'Chooses events. All that is given must match; within a list, any.',
  fields: (t) => ({
    objectId: t.id({ description: 'They are about the object with this id.' }),
    reason: t.stringList({ description: 'Their reason is one of these.' }),
    since: t.field({
      type: 'LogCursor',
      description:
        'They were committed after this position. Of the newest events that you have some may come once more; none is left out.',
    }),
  }),
})

type EventArgs = PageArgs & { filter?: typeof EventFilter.$inferInput | null | undefined }

/** A page of the project's log, newest first; where an object is named, of what happened to it. */
export async function eventsOf(context: Context, args: EventArgs, about?: string) {
  // Whoever may see an object may see what happened to it.
  if (about === undefined) {
    requirePermission(context, 'loadbalancers.list', 'ipv4reservations.list')
  }
  const { store, project } = context
  const asked = eventFilter(args.filter)
  const filter = about === undefined ? asked : narrowed(asked, about)
  return connection(await listEvents(store, { project, filter, page: pageRequest(args) }), null)
}

export type ChosenEvents = { objectId?: string; reason?: string[]; since?: string }

/** The filter as the store reads it; an id that names nothing matches nothing. */
export function eventFilter(filter: EventArgs['filter']): ChosenEvents {
  const { objectId, ...others } = filterOf(filter)
  return objectId === undefined
    ? others
    : { ...others, objectId: decodeId(objectId)?.uuid ?? NOTHING }
}

const narrowed = (filter: ChosenEvents, objectId: string): ChosenEvents => ({
  ...filter,
  objectId: (filter.objectId ?? objectId) === objectId ? objectId : NOTHING,
})
