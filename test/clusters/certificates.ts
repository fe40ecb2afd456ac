import '../../dev/kube/reflect.ts'
import * as x509 from '@peculiar/x509'

export type Pem = { cert: string; key: string }

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const DAY_MS = 86_400_000

// Inferred: whether the name CryptoKeyPair is Node's or the DOM's depends on what else is compiled.
type Keys = Awaited<ReturnType<typeof newKeys>>

/** A certificate authority that lives as long as a test. */
export class Authority {
  readonly cert: string
  readonly #certificate: x509.X509Certificate
  readonly #keys: Keys

  private constructor(certificate: x509.X509Certificate, keys: Keys) {
    this.#certificate = certificate
    this.#keys = keys
    this.cert = certificate.toString('pem')
  }

  static async create(name: string): Promise<Authority> {
    x509.cryptoProvider.set(crypto)
    const keys = await newKeys()
    const certificate = await x509.X509CertificateGenerator.createSelfSigned({
      name: `CN=${name}`,
      keys,
      ...validity(),
      signingAlgorithm: ALGORITHM,
      extensions: [new x509.BasicConstraintsExtension(true, 0, true)],
    })
    return new Authority(certificate, keys)
  }

  /** A certificate for a server under these names, or for a client of this name. */
  async issue(subject: string, names: { dns?: string[]; ip?: string[] } = {}): Promise<Pem> {
    const keys = await newKeys()
    const alternative = [
      ...(names.dns ?? []).map((value) => ({ type: 'dns' as const, value })),
      ...(names.ip ?? []).map((value) => ({ type: 'ip' as const, value })),
    ]
    const certificate = await x509.X509CertificateGenerator.create({
      subject: `CN=${subject}`,
      issuer: this.#certificate.subject,
      publicKey: keys.publicKey,
      signingKey: this.#keys.privateKey,
      ...validity(),
      signingAlgorithm: ALGORITHM,
      extensions:
        alternative.length > 0 ? [new x509.SubjectAlternativeNameExtension(alternative)] : [],
    })
    const key = await crypto.subtle.exportKey('pkcs8', keys.privateKey)
    return { cert: certificate.toString('pem'), key: x509.PemConverter.encode(key, 'PRIVATE KEY') }
  }
}

function newKeys() {
  return crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
}

function validity(): { notBefore: Date; notAfter: Date; serialNumber: string } {
  return {
    notBefore: new Date(Date.now() - DAY_MS),
    notAfter: new Date(Date.now() + DAY_MS),
    // Led by 01, for a serial number is a positive number.
    serialNumber: `01${Buffer.from(crypto.getRandomValues(new Uint8Array(8))).toString('hex')}`,
  }
}
