import { onTestFinished } from 'vitest'
import type { Follow } from '../../src/clusters/cluster.ts'
import { KubernetesCluster, type Mishandled } from '../../src/clusters/kubernetes.ts'
import { type KubeObject, NETWORK_RULES } from '../../src/rules/objects.ts'
import { contextOf } from './kubeconfigs.ts'
import { Recorder } from './recorder.ts'
import { type Call, json, ScriptedServer } from './scripted-server.ts'
import { TestClock } from './test-clock.ts'

export type Step = (call: Call) => void | Promise<void>

/** What a server answers to lists and to watches, in order; the last one again and again. */
export type Script = { lists: Step[]; watches: Step[] }

export type Followed = {
  server: ScriptedServer
  clock: TestClock
  recorder: Recorder
  follow: Follow<KubeObject>
  cluster: KubernetesCluster
  /** What the handler threw, and on what. */
  handlerErrors: [error: unknown, about: Mishandled][]
  watches(): Call[]
  lists(): Call[]
  /** The n-th watch (from 1), as soon as it was asked for. */
  watch(n: number): Promise<Call>
  list(n: number): Promise<Call>
}

export const isWatch = (call: Call): boolean => call.query.has('watch')
export const isList = (call: Call): boolean => !isWatch(call)

/** Follows rules on a server that goes by a script. */
export async function follow(
  script: Script,
  options: {
    clock?: TestClock
    recorder?: Recorder
    random?: () => number
    deadlineMs?: number
  } = {},
): Promise<Followed> {
  const { clock = new TestClock(), recorder = new Recorder(), random = () => 0.5 } = options
  const asked = { lists: 0, watches: 0 }
  const server = await ScriptedServer.start((call) => {
    const kind = isWatch(call) ? 'watches' : 'lists'
    const steps = script[kind]
    const step = steps[Math.min(asked[kind], steps.length - 1)]
    asked[kind] += 1
    return step?.(call)
  })
  onTestFinished(() => server.close())
  const handlerErrors: Followed['handlerErrors'] = []
  const cluster = new KubernetesCluster('k', await contextOf({ server: server.url }), {
    clock,
    random,
    onHandlerError: (...mishandled) => handlerErrors.push(mishandled),
    ...(options.deadlineMs === undefined ? {} : { deadlineMs: options.deadlineMs }),
  })
  onTestFinished(() => cluster.close())
  const running = cluster.follow<KubeObject>(
    NETWORK_RULES,
    { namespace: 'n', labelSelector: 'a=b' },
    recorder,
  )
  const nth = async (matches: (call: Call) => boolean, n: number) => {
    await server.received(n, matches)
    const call = server.calls.filter(matches)[n - 1]
    if (call === undefined) throw new Error('a call that was received is missing')
    return call
  }
  return {
    server,
    clock,
    recorder,
    follow: running,
    cluster,
    handlerErrors,
    watches: () => server.calls.filter(isWatch),
    lists: () => server.calls.filter(isList),
    watch: (n) => nth(isWatch, n),
    list: (n) => nth(isList, n),
  }
}

export function rule(name: string, version: number, uid = `uid-${name}`, note = ''): KubeObject {
  return {
    apiVersion: 'network.datumapis.com/v1alpha1',
    kind: 'NetworkRule',
    metadata: {
      name,
      namespace: 'n',
      uid,
      resourceVersion: String(version),
      ...(note === '' ? {} : { annotations: { note } }),
    },
  }
}

/** A step that answers a list at a version. */
export function listOf(version: number, ...items: KubeObject[]): Step {
  return ({ answer }) => {
    const metadata = { resourceVersion: String(version) }
    json(answer, 200, { kind: 'NetworkRuleList', metadata, items })
  }
}

export function line(type: string, object: object): string {
  return `${JSON.stringify({ type, object })}\n`
}

export function bookmark(version: number): string {
  return line('BOOKMARK', { kind: 'NetworkRule', metadata: { resourceVersion: String(version) } })
}

/** A step that begins a watch, sends these lines and leaves it open. */
export function watchOf(...lines: string[]): Step {
  return ({ answer }) => {
    answer.writeHead(200, { 'content-type': 'application/json' })
    answer.flushHeaders()
    for (const text of lines) answer.write(text)
  }
}

/** A step that sends these lines and ends the watch in good order. */
export function endedWatch(...lines: string[]): Step {
  return (call) => {
    void watchOf(...lines)(call)
    call.answer.end()
  }
}

/** A step that answers a failure. */
export function refusal(code: number, body: object, headers = {}): Step {
  return ({ answer }) => json(answer, code, body, headers)
}
