import { expect, test } from 'vitest'
import { clusterCalled } from '../api/operators.ts'
import { useInstallation } from '../support/installation.ts'
import { createSettled, shown } from './scene.ts'

const NAME = 'us-east-1-a'
const installation = useInstallation({
  clusters: [{ name: NAME, region: 'us-east-1', servesIPv4: false }],
  limits: { ask: 500 },
  guarded: true,
})

test('a cluster that hangs while nobody writes to it is found out, and green again when it answers', async () => {
  const made = await createSettled(installation, installation.addresses(NAME))
  const reachable = async () => (await clusterCalled(installation.operators, NAME)).reachable.reason
  const { promise, resolve } = Promise.withResolvers<void>()
  installation.gatekeeper(NAME).rule(() => promise)
  // A call may take eight seconds, and the schema is not read again for a minute.
  await expect.poll(reachable, { timeout: 20_000 }).toBe('ClusterUnreachable')
  const now = await shown(
    installation,
    made,
    ({ status }) => status.provisioned.reason === 'ClusterUnreachable',
  )
  expect(now.status.provisioned.status).toBe('UNKNOWN')
  installation.gatekeeper(NAME).rule(undefined)
  resolve()
  await expect.poll(reachable, { timeout: 20_000 }).toBe('ClusterAnswers')
  await shown(installation, made, ({ status }) => status.phase === 'ACTIVE')
}, 60_000)
