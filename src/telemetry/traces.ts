/**
 * Traces by OpenTelemetry's API. Without an SDK in the process spans are empty and cost next to nothing;
 * the context of a traced caller goes from its request into the clusters all the same.
 */
import {
  type Attributes,
  type Context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'

const LIBRARY = 'network-load-balancers'
/** W3C Trace Context, version 00: trace id, id of the parent, flags. */
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/

/** What a `traceparent` says; nothing, where it says none or none that is valid. */
export function contextOf(traceparent: unknown): Context {
  if (typeof traceparent !== 'string') return ROOT_CONTEXT
  const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent) ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return ROOT_CONTEXT
  const traceFlags = Number.parseInt(flags, 16) & TraceFlags.SAMPLED
  const parent = { traceId, spanId, traceFlags, isRemote: true }
  return isSpanContextValid(parent) ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT
}

/** The `traceparent` of what a span causes; undefined where nobody records it. */
export function traceparentOf(span: Span): string | undefined {
  const { traceId, spanId, traceFlags } = span.spanContext()
  if ((traceFlags & TraceFlags.SAMPLED) === 0) return undefined
  return `00-${traceId}-${spanId}-01`
}

/** Begins a span that answers a caller. */
export const beginAnswer = (name: string, traceparent: unknown, attributes: Attributes): Span =>
  begin(name, SpanKind.SERVER, contextOf(traceparent), attributes)

/** Begins a span of work that was asked for earlier, by the request that `traceparent` names. */
export const beginWork = (name: string, traceparent: unknown, attributes: Attributes): Span =>
  begin(name, SpanKind.CONSUMER, contextOf(traceparent), attributes)

/** Does something in a span of its own, within another one. */
export async function inSpan<T>(
  within: Span,
  name: string,
  attributes: Attributes,
  work: () => Promise<T>,
): Promise<T> {
  const span = begin(name, SpanKind.CLIENT, trace.setSpan(ROOT_CONTEXT, within), attributes)
  try {
    const done = await work()
    span.end()
    return done
  } catch (error) {
    endSpan(span, error instanceof Error ? error.name : 'Error')
    throw error
  }
}

/** Ends a span; `failure` names what went wrong, in one word. */
export function endSpan(span: Span, failure?: string): void {
  if (failure !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: failure })
  span.end()
}

function begin(name: string, kind: SpanKind, within: Context, attributes: Attributes): Span {
  // The provider may be registered after this file is loaded, so it is asked each time.
  return trace.getTracer(LIBRARY).startSpan(name, { kind, attributes }, within)
}
