import type { Store } from '../db/client.ts'
import type { EventLog } from '../domain/events/log.ts'
import { isProjectKnown } from '../domain/operators/projects.ts'
import { type Clock, type Context, type Noted, SERVICE } from '../schema/context.ts'
import { forbidden, unauthenticated, unknownProject } from '../schema/failures.ts'
import { Loaders } from '../schema/loaders.ts'
import { ANYWHERE, type Caller, type Credentials, type Identify } from './caller.ts'

const PATH =
  /^(?:\/resourcemanager\.miloapis\.com\/v1alpha1)?\/projects\/([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)\/graphql$/
const OPERATORS_PATH = '/graphql'
/** A project that was known stays known for this long, in milliseconds. */
const REMEMBERED = 60_000
const MOST_REMEMBERED = 10_000

/** The project that a path names, in either of its forms, or `ANYWHERE`; null for any other path. */
export function placeOf(url: string): string | null {
  const query = url.indexOf('?')
  const path = query === -1 ? url : url.slice(0, query)
  return path === OPERATORS_PATH ? ANYWHERE : (PATH.exec(path)?.[1] ?? null)
}

/** What all requests share. */
export type Service = {
  store: Store
  log: EventLog
  clock: Clock
  identify: Identify
}

/**
 * Who calls is asked first, then whether they may see the place (a project, or `ANYWHERE`), then whether
 * there is such a project.
 */
export class Door {
  readonly #service: Service
  readonly #known = new Map<string, number>()

  constructor(service: Service) {
    this.#service = service
  }

  /** The caller with their permissions at the place, without the service's prefix. Refuses by throwing. */
  async admit(place: string, credentials: Credentials): Promise<Admitted> {
    const identified = this.#service.identify(credentials, place)
    const caller = identified instanceof Promise ? await identified : identified
    if (caller === null) throw unauthenticated('Send a token that this service accepts.')
    const granted = grantedIn(caller, place)
    if (place === ANYWHERE) {
      if (granted === undefined) throw forbidden('Only operators are served here.', 403)
      return { caller, project: null, permissions: unprefixed(granted) }
    }
    if (granted === undefined) throw forbidden(`You may not see project "${place}".`, 403)
    if (!this.#remembers(place)) {
      if (!(await isProjectKnown(this.#service.store, place))) throw unknownProject(place)
      this.#remember(place)
    }
    return { caller, project: place, permissions: unprefixed(granted) }
  }

  /** The context of one operation. */
  context({ caller, project, permissions }: Admitted, noted?: Noted): Context {
    const { store, log, clock } = this.#service
    return {
      store,
      log,
      clock,
      project,
      caller,
      permissions,
      loaders: new Loaders(store, project),
      noted,
    }
  }

  #remembers(project: string): boolean {
    const since = this.#known.get(project)
    return since !== undefined && performance.now() - since < REMEMBERED
  }

  #remember(project: string): void {
    if (this.#known.size >= MOST_REMEMBERED) this.#known.clear()
    this.#known.set(project, performance.now())
  }
}

export type Admitted = {
  caller: Caller
  /** null: all of them, as operators see them. */
  project: string | null
  permissions: ReadonlySet<string>
}

/** What a caller may do in a project: what they were given there, and everywhere. */
function grantedIn({ projects }: Caller, place: string): ReadonlySet<string> | undefined {
  const here = projects.get(place)
  const anywhere = projects.get(ANYWHERE)
  if (anywhere === undefined || here === undefined || place === ANYWHERE) return here ?? anywhere
  const known = both.get(here)
  if (known?.anywhere === anywhere) return known.granted
  const granted = new Set([...anywhere, ...here])
  both.set(here, { anywhere, granted })
  return granted
}

type Granted = ReadonlySet<string>
const both = new WeakMap<Granted, { anywhere: Granted; granted: Granted }>()

const PREFIX = `${SERVICE}/`
const without = new WeakMap<ReadonlySet<string>, ReadonlySet<string>>()

/** Callers are often the same object again. */
function unprefixed(granted: ReadonlySet<string>): ReadonlySet<string> {
  const known = without.get(granted)
  if (known !== undefined) return known
  const ours = [...granted].filter((id) => id.startsWith(PREFIX))
  const permissions = new Set(ours.map((id) => id.slice(PREFIX.length)))
  without.set(granted, permissions)
  return permissions
}
