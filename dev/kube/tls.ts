import './reflect.ts'
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509'

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

async function keyPem(key: Key): Promise<string> {
  const der = Buffer.from(await crypto.subtle.exportKey('pkcs8', key)).toString('base64')
  return `-----BEGIN PRIVATE KEY-----\n${der.replace(/.{64}/g, '$&\n').trim()}\n-----END PRIVATE KEY-----\n`
}

const serial = (): string =>
  Buffer.from(
    crypto.getRandomValues(new Uint8Array(8)).map((b, i) => (i === 0 ? b & 0x7f : b)),
  ).toString('hex')

/** A certificate authority of this server alone, with a serving and an admin's client certificate. */
export async function newCredentials(host: string): Promise<Credentials> {
  // An hour back: clocks of virtual machines jump.
  const notBefore = new Date(Date.now() - 3600 * 1000)
  const notAfter = new Date(Date.now() + TEN_YEARS_MS)
  const validity = { notBefore, notAfter, signingAlgorithm: ALGORITHM }
  const caKeys = await keyPair()
  const ca = await X509CertificateGenerator.createSelfSigned({
    ...validity,
    serialNumber: serial(),
    name: 'CN=embedded-kube-ca',
    keys: caKeys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
    ],
  })
  const issue = async (
    subject: string,
    usage: ExtendedKeyUsage,
    names: { type: 'dns' | 'ip'; value: string }[],
  ): Promise<{ certificate: string; key: string }> => {
    const keys = await keyPair()
    const certificate: X509Certificate = await X509CertificateGenerator.create({
      ...validity,
      serialNumber: serial(),
      subject,
      issuer: ca.subject,
      publicKey: keys.publicKey,
      signingKey: caKeys.privateKey,
      extensions: [
        new ExtendedKeyUsageExtension([usage]),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        ...(names.length === 0 ? [] : [new SubjectAlternativeNameExtension(names)]),
      ],
    })
    return { certificate: certificate.toString('pem'), key: await keyPem(keys.privateKey) }
  }
  const server = await issue('CN=embedded-kube', ExtendedKeyUsage.serverAuth, [
    { type: 'dns', value: 'localhost' },
    { type: 'ip', value: host },
    ...(host === '127.0.0.1' ? [] : [{ type: 'ip' as const, value: '127.0.0.1' }]),
  ])
  const client = await issue('CN=admin, O=system:masters', ExtendedKeyUsage.clientAuth, [])
  return {
    ca: ca.toString('pem'),
    serverCertificate: server.certificate,
    serverKey: server.key,
    clientCertificate: client.certificate,
    clientKey: client.key,
    token: Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString('base64url'),
  }
}
