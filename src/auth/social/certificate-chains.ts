import type { X509Certificate } from "@peculiar/x509"

/** A library that only players of Game Center need, loaded at its first use. It asks for the other one. */
export function x509(): typeof import("@peculiar/x509") {
  require("reflect-metadata")
  return require("@peculiar/x509")
}

/** Certificates between a leaf and its root. */
const MOST_BETWEEN = 3

const MOST_IN_FILE = 5

/** The certificates of a file: one in DER, or some in PEM. Throws where it is neither. */
export function certificatesIn(file: Uint8Array<ArrayBuffer>): X509Certificate[] {
  const { X509Certificate, PemConverter } = x509()
  const text = Buffer.from(file).toString("latin1")
  const blocks = text.includes("-----BEGIN") ? PemConverter.decode(text) : [file]
  return blocks.slice(0, MOST_IN_FILE).map((block) => new X509Certificate(block))
}

interface ChainAround {
  /** The only ones that are trusted. */
  roots: X509Certificate[]
  /** Those that came with the leaf, in any order. */
  others: X509Certificate[]
  /** Where none of them has issued a certificate: what is found by its own word. */
  issuersOf: (certificate: X509Certificate) => Promise<X509Certificate[]>
}

/**
 * From a certificate to a root, each signed by the next one, and each one between them allowed to sign (RFC 5280,
 * section 6.1). Undefined where no such chain is found. When each of them is valid, the caller decides.
 */
export async function chainOf(
  leaf: X509Certificate,
  { roots, others, issuersOf }: ChainAround,
): Promise<X509Certificate[] | undefined> {
  const chain = [leaf]
  for (let last = leaf, between = 0; between <= MOST_BETWEEN; between++) {
    const root = await issuerAmong(roots, last)
    if (root) return [...chain, root]
    const known = await issuerAmong(others, last)
    const next = known ?? (await issuerAmong(await issuersOf(last), last))
    if (!next || !mayIssue(next, between)) return undefined
    chain.push(next)
    last = next
  }
  return undefined
}

async function issuerAmong(candidates: X509Certificate[], certificate: X509Certificate) {
  for (const candidate of candidates) {
    if (candidate.subject !== certificate.issuer) continue
    const signed_by = { publicKey: candidate.publicKey, signatureOnly: true }
    if (await certificate.verify(signed_by)) return candidate
  }
  return undefined
}

/** `below`: the certificates between it and the leaf (RFC 5280, sections 4.2.1.3 and 4.2.1.9). */
function mayIssue(certificate: X509Certificate, below: number): boolean {
  const { BasicConstraintsExtension, KeyUsagesExtension, KeyUsageFlags } = x509()
  const basic = certificate.getExtension(BasicConstraintsExtension)
  if (!basic?.ca || below > (basic.pathLength ?? below)) return false
  const usages = certificate.getExtension(KeyUsagesExtension)?.usages
  return usages === undefined || (usages & KeyUsageFlags.keyCertSign) !== 0
}

/** Whether its key may sign for code: what it says of its uses, it must say of this one, too (RFC 5280, section 4.2.1.12). */
export function maySign(leaf: X509Certificate): boolean {
  const { BasicConstraintsExtension, KeyUsagesExtension, KeyUsageFlags } = x509()
  const { ExtendedKeyUsageExtension, ExtendedKeyUsage } = x509()
  if (leaf.getExtension(BasicConstraintsExtension)?.ca) return false
  const usages = leaf.getExtension(KeyUsagesExtension)?.usages ?? KeyUsageFlags.digitalSignature
  const purposes = leaf.getExtension(ExtendedKeyUsageExtension)?.usages
  const is_for_code = purposes?.includes(ExtendedKeyUsage.codeSigning) ?? true
  return is_for_code && (usages & KeyUsageFlags.digitalSignature) !== 0
}

/** Where a certificate says that the one of its issuer is (RFC 5280, section 4.2.2.1). */
export const issuerUrlsOf = (certificate: X509Certificate): string[] =>
  certificate
    .getExtension(x509().AuthorityInfoAccessExtension)
    ?.caIssuers.filter(({ type }) => type === "url")
    .map(({ value }) => value) ?? []
