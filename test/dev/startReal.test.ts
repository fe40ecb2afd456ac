import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Kubeconfig } from '../../src/clusters/kubeconfig.ts'
import { KubernetesCluster } from '../../src/clusters/kubernetes.ts'
import { DATA_PLANE_NAMESPACE, NETWORK_RULES, type NetworkRule } from '../../src/rules/objects.ts'
import { fail } from '../clusters/kubeconfigs.ts'
import { REAL, realClusters, turn } from '../support/clusters.ts'
import {
  allGone,
  ask,
  commandOf,
  family,
  firstMutation,
  STARTING_MS,
  signal,
  untilActive,
  useStarts,
  welcomed,
} from './starting.ts'

const { run } = useStarts()

describe.skipIf(!realClusters)(`a start with ${REAL} for each cluster`, () => {
  test('serves what it prints with rules in real clusters, which its kubeconfig leads to; Ctrl-C ends every process', {
    timeout: 3 * STARTING_MS,
  }, async () => {
    onTestFinished(await turn())
    const started = run(['--kube', 'real'])
    const url = await welcomed(started)
    const processes = await family(started.pid)
    const commands = await Promise.all(processes.map(commandOf))
    for (const program of ['kube-apiserver', 'etcd']) {
      const servers = commands.filter((command) => command.split('\0')[0]?.endsWith(`/${program}`))
      expect(servers).toHaveLength(4)
    }
    expect(await ask(url, firstMutation(started))).toMatchObject({
      data: { createLoadBalancer: { loadBalancer: { generation: 1 } } },
    })
    await untilActive(url)

    const told = /KUBECONFIG=(\S+) kubectl --context (\S+)/.exec(started.said())
    const [, path = '', name = ''] = told ?? []
    const kubeconfig = await Kubeconfig.open(join(process.cwd(), path), {
      onProblem: fail,
      pollMs: 0,
    })
    expect(kubeconfig.names()).toHaveLength(4)
    const context = kubeconfig.context(name)
    if (context === undefined) throw new Error(`${path} has no context ${name}`)
    const cluster = new KubernetesCluster(name, context, { onHandlerError: fail })
    const rules = await cluster.list<NetworkRule>(NETWORK_RULES, {
      namespace: DATA_PLANE_NAMESPACE,
    })
    expect(rules).toMatchObject([
      { spec: { protocol: 'tcp', port: 80, backends: [{ port: 80 }] }, status: expect.anything() },
    ])
    await cluster.close()

    signal(-started.pid, 'SIGINT')
    expect(await started.exit).toEqual([0, null])
    await allGone(processes)
  })
})
