import type { HealthCheckSettings, HttpProbe, TcpProbe } from '../domain/records.ts'
import { builder } from './builder.ts'

const port = "The port that is probed; null: the load balancer's own."

const HealthProbeInterface = builder.interfaceRef<TcpProbe | HttpProbe>('HealthProbe')

HealthProbeInterface.implement({
  description: 'How a backend is asked whether it is well.',
  resolveType: (probe) => (probe.kind === 'tcp' ? 'TcpProbe' : 'HttpProbe'),
  fields: (t) => ({
    port: t.expose('port', { type: 'Port', nullable: true, description: port }),
  }),
})

builder.objectRef<TcpProbe>('TcpProbe').implement({
  description: 'Well is who accepts a TCP connection.',
  interfaces: [HealthProbeInterface],
})

const HttpScheme = builder.enumType('HttpScheme', {
  description: 'Whether an HTTP probe is encrypted.',
  values: {
    HTTP: { description: 'Plain HTTP. The default.' },
    HTTPS: { description: 'HTTP over TLS.' },
  } as const,
})

const StatusRange = builder.objectRef<{ from: number; to: number }>('StatusRange').implement({
  description: 'HTTP status codes that follow one another.',
  fields: (t) => ({
    from: t.exposeInt('from', { description: 'The first code, 100 to 599.' }),
    to: t.exposeInt('to', { description: 'The last code; equal to `from` for one code.' }),
  }),
})

builder.objectRef<HttpProbe>('HttpProbe').implement({
  description: 'Well is who answers an HTTP request with an expected status.',
  interfaces: [HealthProbeInterface],
  fields: (t) => ({
    scheme: t.expose('scheme', { type: HttpScheme, description: 'Whether it is encrypted.' }),
    host: t.exposeString('host', {
      nullable: true,
      description:
        "The Host header (and the name in TLS) that is sent; null: the backend's address.",
    }),
    path: t.exposeString('path', { description: 'The path that is requested.' }),
    expectedStatuses: t.expose('expectedStatuses', {
      type: [StatusRange],
      description: 'The status codes that mean well.',
    }),
    verifyCertificate: t.exposeBoolean('verifyCertificate', {
      description: 'Whether a certificate that is not trusted counts as a failure. HTTPS only.',
    }),
  }),
})

export const HealthCheck = builder.objectRef<HealthCheckSettings>('HealthCheck')

HealthCheck.implement({
  description:
    'How the backends are probed. Whoever fails is left out until it is well again; the connections that it had are cut.',
  fields: (t) => ({
    enabled: t.exposeBoolean('enabled', {
      description: 'Whether backends are probed at all. Without it every enabled backend serves.',
    }),
    probe: t.expose('probe', {
      type: HealthProbeInterface,
      description: 'What is asked of a backend.',
    }),
    intervalSeconds: t.exposeInt('intervalSeconds', {
      description: 'Seconds from one probe of a backend to the next.',
    }),
    timeoutSeconds: t.exposeInt('timeoutSeconds', {
      description: 'Seconds after which a probe without an answer has failed.',
    }),
    rise: t.exposeInt('rise', {
      description: 'Successes in a row before an unhealthy backend is healthy again.',
    }),
    fall: t.exposeInt('fall', {
      description: 'Failures in a row before a healthy backend is unhealthy.',
    }),
    minimumHealthyPercent: t.exposeInt('minimumHealthyPercent', {
      description:
        'Below this share of backends that are not unhealthy every enabled one serves (fail open), since the check is then more likely to be wrong than they are. 0 to 100; with 0 only when none is left.',
    }),
  }),
})

const TcpProbeInput = builder.inputType('TcpProbeInput', {
  description: 'Well is who accepts a TCP connection.',
  fields: (t) => ({
    port: t.field({
      type: 'Port',
      description: "The port to probe. The load balancer's own where none is given.",
    }),
  }),
})

const StatusRangeInput = builder.inputType('StatusRangeInput', {
  description: 'HTTP status codes that follow one another.',
  fields: (t) => ({
    from: t.int({ required: true, description: 'The first code, 100 to 599.' }),
    to: t.int({ required: true, description: 'The last code, at least `from`.' }),
  }),
})

const HttpProbeInput = builder.inputType('HttpProbeInput', {
  description: 'Well is who answers an HTTP request with an expected status.',
  fields: (t) => ({
    port: t.field({
      type: 'Port',
      description: "The port to probe. The load balancer's own where none is given.",
    }),
    scheme: t.field({ type: HttpScheme, description: 'HTTP where none is given.' }),
    host: t.string({
      description:
        "The Host header (and the name in TLS). The backend's address where none is given.",
    }),
    path: t.string({ description: 'The path to request, beginning with a slash. `/` by default.' }),
    expectedStatuses: t.field({
      type: [StatusRangeInput],
      description: 'The status codes that mean well. 200 to 399 where none are given.',
    }),
    verifyCertificate: t.boolean({
      required: true,
      defaultValue: false,
      description: 'Whether a certificate that is not trusted counts as a failure. HTTPS only.',
    }),
  }),
})

const HealthProbeInput = builder.inputType('HealthProbeInput', {
  description: 'How to ask a backend whether it is well: exactly one of these.',
  isOneOf: true,
  fields: (t) => ({
    tcp: t.field({ type: TcpProbeInput, description: 'By a TCP connection.' }),
    http: t.field({ type: HttpProbeInput, description: 'By an HTTP request.' }),
  }),
})

export const HealthCheckInput = builder.inputType('HealthCheckInput', {
  description:
    'How to probe backends. Merged field by field with what is there, but for the probe, which is replaced whole.',
  fields: (t) => ({
    enabled: t.boolean({
      description:
        'Whether to probe at all. True where nothing is given; for UDP false until a probe with a port of its own is given.',
    }),
    probe: t.field({
      type: HealthProbeInput,
      description: "What to ask. A TCP connection to the load balancer's port by default.",
    }),
    intervalSeconds: t.int({ description: 'Seconds from one probe to the next. 10 by default.' }),
    timeoutSeconds: t.int({
      description: 'Seconds after which a probe has failed; at most the interval. 5 by default.',
    }),
    rise: t.int({
      description: 'Successes in a row before an unhealthy backend is healthy. 2 by default.',
    }),
    fall: t.int({
      description: 'Failures in a row before a healthy backend is unhealthy. 3 by default.',
    }),
    minimumHealthyPercent: t.int({
      description:
        'Below this share of backends that are not unhealthy every enabled one serves. 0 to 100; 0 by default: only when none is left.',
    }),
  }),
})
