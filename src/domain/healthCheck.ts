import type { Protocol } from '../rules/wanted.ts'
import { hostHeaderMeant, isHostHeader } from './hostHeader.ts'
import type { InvalidValue, ValidationIssue } from './input.ts'
import type { HealthCheckInput, HealthProbeInput } from './loadBalancers/inputs.ts'
import type { HealthCheckSettings, HttpProbe, TcpProbe } from './records.ts'

/** What applies where nothing is said: TCP to the load balancer's own port, for TCP load balancers. */
export const defaultHealthCheck = (protocol: Protocol): HealthCheckSettings => ({
  enabled: protocol === 'TCP',
  probe: { kind: 'tcp', port: null },
  intervalSeconds: 10,
  timeoutSeconds: 5,
  rise: 2,
  fall: 3,
  minimumHealthyPercent: 0,
})

const BOUNDS = {
  intervalSeconds: [1, 300],
  timeoutSeconds: [1, 60],
  rise: [1, 10],
  fall: [1, 10],
  minimumHealthyPercent: [0, 100],
} as const

/** The value that can be had which is nearest to the one that was asked for. */
const nearest = (field: keyof typeof BOUNDS, value: number): number =>
  Math.min(Math.max(value, BOUNDS[field][0]), BOUNDS[field][1])

/**
 * The settings with the input merged in, field by field; the probe is replaced whole. For UDP it is
 * on by itself once a probe with a port is given.
 */
export function mergeHealthCheck(
  settings: HealthCheckSettings,
  input: HealthCheckInput | null | undefined,
  protocol: Protocol,
): HealthCheckSettings {
  if (!input) return settings
  const probe = input.probe ? toProbe(input.probe) : settings.probe
  const turnsOn = protocol === 'UDP' && Boolean(input.probe) && probe.port !== null
  return {
    enabled: input.enabled ?? (turnsOn || settings.enabled),
    probe,
    intervalSeconds: input.intervalSeconds ?? settings.intervalSeconds,
    timeoutSeconds: input.timeoutSeconds ?? settings.timeoutSeconds,
    rise: input.rise ?? settings.rise,
    fall: input.fall ?? settings.fall,
    minimumHealthyPercent: input.minimumHealthyPercent ?? settings.minimumHealthyPercent,
  }
}

function toProbe(input: HealthProbeInput): TcpProbe | HttpProbe {
  const port = (value: number | InvalidValue | null | undefined): number | null =>
    typeof value === 'number' ? value : null
  if (!input.http) return { kind: 'tcp', port: port(input.tcp?.port) }
  const { http } = input
  return {
    kind: 'http',
    port: port(http.port),
    scheme: http.scheme ?? 'HTTP',
    host: http.host ?? null,
    path: http.path ?? '/',
    expectedStatuses: http.expectedStatuses ?? [{ from: 200, to: 399 }],
    verifyCertificate: http.verifyCertificate ?? false,
  }
}

/** What is wrong with merged settings; paths are from the input's root. */
export function healthCheckIssues(
  settings: HealthCheckSettings,
  protocol: Protocol,
): ValidationIssue[] {
  const issues: ValidationIssue[] = []
  const report = (code: string, message: string, field: string, suggestion: string | null = null) =>
    issues.push({ code, message, path: ['healthCheck', ...field.split('.')], suggestion })
  for (const field of Object.keys(BOUNDS) as (keyof typeof BOUNDS)[]) {
    const [least, most] = BOUNDS[field]
    const value = settings[field]
    if (value < least || value > most) {
      report(
        'OUT_OF_RANGE',
        `${field} is ${least} to ${most}.`,
        field,
        String(nearest(field, value)),
      )
    }
  }
  if (settings.timeoutSeconds > settings.intervalSeconds) {
    report(
      'OUT_OF_RANGE',
      `The timeout (${settings.timeoutSeconds} s) is longer than the interval (${settings.intervalSeconds} s).`,
      'timeoutSeconds',
      String(nearest('intervalSeconds', settings.intervalSeconds)),
    )
  }
  if (protocol === 'UDP' && settings.enabled && settings.probe.port === null) {
    report(
      'PROBE_PORT_REQUIRED',
      'UDP itself cannot be probed: name the TCP port to probe, or turn the check off.',
      'probe',
    )
  }
  if (settings.probe.kind === 'http') httpIssues(settings.probe, report)
  return issues
}

function httpIssues(
  probe: HttpProbe,
  report: (code: string, message: string, field: string, suggestion?: string | null) => void,
): void {
  if (!/^\/[\x21-\x7e]{0,1023}$/.test(probe.path)) {
    report(
      'INVALID_PATH',
      'A path begins with "/" and has at most 1024 printable ASCII characters without spaces.',
      'probe.http.path',
      probe.path.startsWith('/') ? null : `/${probe.path}`,
    )
  }
  if (probe.host !== null && !isHostHeader(probe.host)) {
    report(
      'INVALID_HOST',
      'A host is a name of at most 253 characters or an address, in brackets one of IPv6, and after a colon perhaps a port.',
      'probe.http.host',
      hostHeaderMeant(probe.host),
    )
  }
  if (probe.expectedStatuses.length === 0 || probe.expectedStatuses.length > 20) {
    report('INVALID_STATUS', '1 to 20 ranges of statuses are kept.', 'probe.http.expectedStatuses')
  }
  probe.expectedStatuses.forEach(({ from, to }, index) => {
    if (from < 100 || to > 599 || from > to) {
      report(
        'INVALID_STATUS',
        'A range of statuses lies within 100 to 599, from the lower to the higher.',
        `probe.http.expectedStatuses.${index}`,
      )
    }
  })
}
