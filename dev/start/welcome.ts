import { DATA_PLANE_NAMESPACE } from '../../src/rules/objects.ts'

/** What a person is told once everything runs. */
export function welcome(facts: {
  url: string
  project: string
  vpcId: string
  region: string
  /** One in each cluster of the region. */
  backends: string[]
  dataDir: string
  /** Leads to the clusters, by a context of the cluster's name; and one of the region's. */
  kubeconfig: string
  cluster: string
  /** By whom they are for. */
  tokens: ReadonlyMap<string, string>
  /** Where the processes tell how they are. */
  metrics?: { api: string; worker: string } | undefined
  seconds: number
}): string {
  const endpoint = `${facts.url}/projects/${facts.project}/graphql`
  const backends = facts.backends.map((address) => `{ address: "${address}" }`).join(', ')
  const mutation = `mutation {
  createLoadBalancer(input: {
    name: "web", vpc: "${facts.vpcId}", region: "${facts.region}"
    protocol: { tcp: { port: 80 } }
    backends: [${backends}]
  }) {
    ... on CreateLoadBalancerPayload { loadBalancer { id generation addresses { address } } }
    ... on UserError { message }
  }
}`
  const query = '{ loadBalancers { nodes { name status { phase } } } }'
  return `
Everything runs, after ${facts.seconds.toFixed(1)} s. Open GraphiQL:

  ${endpoint}

A first load balancer, to paste there:

${indent(mutation)}

Watch it settle, in another tab:

${indent('subscription { loadBalancers { type loadBalancer { name status { phase observedGeneration } } } }')}

The same by curl:

  curl ${endpoint} -H 'content-type: application/json' \\
    -d '${JSON.stringify({ query })}'

Whoever calls from this machine may do everything in both projects, and what operators may at
${facts.url}/graphql. To be somebody else, send a token (good for 12 hours, or until this ends):

${[...facts.tokens].map(([name, token]) => `  ${name.toUpperCase()}=${token}`).join('\n')}

  curl ${endpoint} -H "authorization: Bearer $${facts.project.toUpperCase()}" -H 'content-type: application/json' \\
    -d '{"query":"{ caller { email permissions } }"}'

The clusters' side of it, by kubectl:

  KUBECONFIG=${facts.kubeconfig} kubectl --context ${facts.cluster} -n ${DATA_PLANE_NAMESPACE} get networkrules
${measured(facts.metrics)}
Data are in ${facts.dataDir}; npm start -- ${facts.dataDir === '.data/' ? '' : `--data ${facts.dataDir} `}--fresh begins anew. Ctrl-C stops everything.
`
}

function measured(metrics: { api: string; worker: string } | undefined): string {
  if (metrics === undefined) return ''
  return `
What they do can be watched (docs/operate.md), the API and the worker:

  ${metrics.api}/metrics
  ${metrics.worker}/metrics
`
}

function indent(text: string): string {
  return text.replace(/^/gm, '  ')
}
