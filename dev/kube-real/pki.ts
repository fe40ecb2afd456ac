import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isObject, textAt } from '../kube/json.ts'
import { Authority, newKeys, newToken, type Pair } from '../kube/tls.ts'

/** Somebody who may call by bearer token, with the rights that RBAC gives them. */
export type User = { name: string; token: string; groups?: string[] }

/** What one server and its callers prove who they are with. */
export type Pki = {
  authority: Authority
  /** The administrator's; members of `system:masters` may do everything. */
  admin: Pair
  token: string
  /** Paths, for kube-apiserver's flags. */
  files: Record<'ca' | 'certificate' | 'key' | 'signingKey' | 'verifyingKey' | 'tokens', string>
}

const ADMINS = 'system:masters'

/** Certificates, keys and tokens in `folder`: those of an earlier run, or new ones. */
export async function openPki(folder: string, users: User[]): Promise<Pki> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const files = {
    ca: join(folder, 'ca.crt'),
    certificate: join(folder, 'server.crt'),
    key: join(folder, 'server.key'),
    signingKey: join(folder, 'service-account.key'),
    verifyingKey: join(folder, 'service-account.pub'),
    tokens: join(folder, 'tokens.csv'),
  }
  const write = (path: string, text: string) => writeFile(path, text, { mode: 0o600 })
  const kept = await readKept(join(folder, 'kept.json'))
  const authority =
    kept === undefined ? await Authority.create('kube-real-ca') : await Authority.restore(kept.ca)
  const admin = kept?.admin ?? (await authority.forClient('admin', [ADMINS]))
  const token = kept?.token ?? newToken()
  if (kept === undefined) {
    const server = await authority.forServer('kube-apiserver', '127.0.0.1')
    await write(files.ca, authority.certificate)
    await write(files.certificate, server.certificate)
    await write(files.key, server.key)
    const serviceAccounts = await newKeys()
    await write(files.signingKey, serviceAccounts.privateKey)
    await write(files.verifyingKey, serviceAccounts.publicKey)
    const ca = await authority.pair()
    await write(join(folder, 'kept.json'), JSON.stringify({ ca, admin, token }))
  }
  const all: User[] = [{ name: 'admin', token, groups: [ADMINS] }, ...users]
  await write(files.tokens, all.map(tokenLine).join(''))
  return { authority, admin, token, files }
}

/** token,user,uid,"groups" */
const tokenLine = ({ name, token, groups = [] }: User): string =>
  `${token},${name},${name},"${groups.join(',')}"\n`

type Kept = { ca: Pair; admin: Pair; token: string }

async function readKept(path: string): Promise<Kept | undefined> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
  const kept: unknown = JSON.parse(text)
  const [ca, admin] = isObject(kept) ? [pairFrom(kept['ca']), pairFrom(kept['admin'])] : []
  const token = isObject(kept) ? textAt(kept, 'token') : undefined
  if (ca === undefined || admin === undefined || token === undefined) {
    throw new Error(`${path} is incomplete; delete the folder around it to begin anew`)
  }
  return { ca, admin, token }
}

function pairFrom(value: unknown): Pair | undefined {
  if (!isObject(value)) return undefined
  const [certificate, key] = [textAt(value, 'certificate'), textAt(value, 'key')]
  return certificate === undefined || key === undefined ? undefined : { certificate, key }
}
