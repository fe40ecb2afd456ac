/** A cluster with many attachments, in a process of its own; prints where it is. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Writer } from '../dev/dataplane/writer.ts'
import { writeKubeconfig } from '../dev/fleet/kubeconfig.ts'
import { seedAttachment, seedCluster } from '../dev/fleet/seed.ts'
import { startApiServer } from '../dev/kube/server.ts'
import { Kubeconfig } from '../src/clusters/kubeconfig.ts'

const [, , file = '', count = '10000'] = process.argv
const directory = fileURLToPath(new URL('../dev/crds/', import.meta.url))
const names = (await readdir(directory)).filter((name) => name.endsWith('.yaml'))
const crds = await Promise.all(names.map((name) => readFile(join(directory, name), 'utf8')))
const server = await startApiServer({ crds })
await writeKubeconfig(file, new Map([['big', server]]))
const kubeconfig = await Kubeconfig.open(file, { onProblem: console.error, pollMs: 0 })
const context = kubeconfig.context('big')
if (context === undefined) throw new Error('the kubeconfig is not usable')
const writer = new Writer(context, 'bench')
const project = { name: 'demo', vpcName: 'demo-vpc', vpcId: '5dEmo1', network: 'fd20:1::' }
await seedCluster(writer, [project], [])
const numbers = Array.from({ length: Number(count) }, (_, index) => index + 1)
const seed = async () => {
  for (let number = numbers.pop(); number !== undefined; number = numbers.pop()) {
    const address = `fd20:1::${Math.floor(number / 65_536).toString(16)}:${(number % 65_536).toString(16)}`
    await seedAttachment(writer, {
      project: 'demo',
      vpcName: 'demo-vpc',
      vpcId: '5dEmo1',
      region: 'r',
      cluster: 'big',
      attachment: { namespace: 'demo', name: `web-${number}` },
      attachmentId: `a${number}`,
      node: `node-${number % 200}`,
      address,
      cidr: `${address}/128`,
    })
  }
}
await Promise.all(Array.from({ length: 32 }, seed))
console.log('ready')
process.on('SIGTERM', () => process.exit(0))
