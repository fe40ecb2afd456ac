import './reflect.ts'
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509'

/** A certificate and its key, PEM. */
export type Pair = { certificate: string; key: string }

/** Keys and certificates of one server, all PEM, and the admin's token. */
export type Credentials = {
  ca: string
  serverCertificate: string
  serverKey: string
  clientCertificate: string
  clientKey: string
  token: string
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const TEN_YEARS_MS = 10 * 365 * 24 * 3600 * 1000

const keyPair = () => crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])

type Key = Awaited<ReturnType<typeof keyPair>>['privateKey']

const keyPem = async (key: Key): Promise<string> =>
  `${PemConverter.encode(await crypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY')}\n`

/** A key pair without a certificate, PEM. */
export async function newKeys(): Promise<{ privateKey: string; publicKey: string }> {
  const { privateKey, publicKey } = await keyPair()
  const der = await crypto.subtle.exportKey('spki', publicKey)
  const publicPem = `${PemConverter.encode(der, 'PUBLIC KEY')}\n`
  return { privateKey: await keyPem(privateKey), publicKey: publicPem }
}

export const newToken = (): string =>
  Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString('base64url')

/** A positive number: the first bit is off. */
const serial = (): string =>
  Buffer.from(
    crypto.getRandomValues(new Uint8Array(8)).map((b, i) => (i === 0 ? b & 0x7f : b)),
  ).toString('hex')

function validity() {
  return {
    // An hour back: clocks of virtual machines jump.
    notBefore: new Date(Date.now() - 3600 * 1000),
    notAfter: new Date(Date.now() + TEN_YEARS_MS),
    signingAlgorithm: ALGORITHM,
    serialNumber: serial(),
  }
}

/** A certificate authority of one server alone. */
export class Authority {
  readonly #certificate: X509Certificate
  readonly #key: Key

  private constructor(certificate: X509Certificate, key: Key) {
    this.#certificate = certificate
    this.#key = key
  }

  static async create(name: string): Promise<Authority> {
    const keys = await keyPair()
    const certificate = await X509CertificateGenerator.createSelfSigned({
      ...validity(),
      name: `CN=${name}`,
      keys,
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      ],
    })
    return new Authority(certificate, keys.privateKey)
  }

  /** One that was kept. */
  static async restore(kept: Pair): Promise<Authority> {
    const der = PemConverter.decodeFirst(kept.key)
    const key = await crypto.subtle.importKey('pkcs8', der, ALGORITHM, true, ['sign'])
    return new Authority(new X509Certificate(kept.certificate), key)
  }

  get certificate(): string {
    return this.#certificate.toString('pem')
  }

  /** To be kept. */
  async pair(): Promise<Pair> {
    return { certificate: this.certificate, key: await keyPem(this.#key) }
  }

  /** For a server at `host` and at localhost. */
  forServer(name: string, host: string): Promise<Pair> {
    const addresses = [...new Set([host, '127.0.0.1'])]
    return this.#issue(`CN=${name}`, ExtendedKeyUsage.serverAuth, [
      { type: 'dns', value: 'localhost' },
      ...addresses.map((value) => ({ type: 'ip' as const, value })),
    ])
  }

  /** For a client: Kubernetes takes the name for the user and the organisations for its groups. */
  forClient(name: string, groups: string[] = []): Promise<Pair> {
    const subject = [`CN=${name}`, ...groups.map((group) => `O=${group}`)].join(', ')
    return this.#issue(subject, ExtendedKeyUsage.clientAuth, [])
  }

  async #issue(
    subject: string,
    usage: ExtendedKeyUsage,
    names: { type: 'dns' | 'ip'; value: string }[],
  ): Promise<Pair> {
    const keys = await keyPair()
    const certificate = await X509CertificateGenerator.create({
      ...validity(),
      subject,
      issuer: this.#certificate.subject,
      publicKey: keys.publicKey,
      signingKey: this.#key,
      extensions: [
        new ExtendedKeyUsageExtension([usage]),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        ...(names.length === 0 ? [] : [new SubjectAlternativeNameExtension(names)]),
      ],
    })
    return { certificate: certificate.toString('pem'), key: await keyPem(keys.privateKey) }
  }
}

/** A certificate authority of this server alone, with a serving and an admin's client certificate. */
export async function newCredentials(host: string): Promise<Credentials> {
  const authority = await Authority.create('embedded-kube-ca')
  const server = await authority.forServer('embedded-kube', host)
  const client = await authority.forClient('admin', ['system:masters'])
  return {
    ca: authority.certificate,
    serverCertificate: server.certificate,
    serverKey: server.key,
    clientCertificate: client.certificate,
    clientKey: client.key,
    token: newToken(),
  }
}
