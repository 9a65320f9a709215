/** What the product uses of mailauth and mailauth itself does not declare. */
declare module "mailauth/lib/dkim/dkim-verifier" {
  /** One header field: the name in lower case, as it is written, and the whole field without its last CRLF. */
  export interface HeaderRow {
    key: string
    casedKey: string
    line: Buffer
  }

  interface TagValue {
    value?: string | number
  }

  export interface SignatureField {
    type: "DKIM" | "ARC"
    signingDomain: string
    selector: string
    /** Why it is passed over, or not valid without a look at the key. */
    skip?: string
    invalid?: string
    parsed: Record<string, TagValue | undefined>
  }

  interface KeyStatus {
    result: "pass" | "fail" | "neutral" | "policy" | "temperror" | "none"
    comment?: string | false
    policy?: Record<string, string>
    /** Bytes of the body that `l=` leaves unsigned. */
    underSized?: number
    testing?: boolean
  }

  export interface SignatureResult {
    signingDomain?: string
    selector?: string
    algo?: string
    status: KeyStatus
    modulusLength?: number
    expiresAfter?: string | null
  }

  export interface ArcSet {
    i: number
    "arc-seal": SignatureField
    "arc-message-signature": SignatureField
    messageSignature?: SignatureResult
  }

  interface BodyHash {
    digest(encoding: "base64"): string
    getMimeStructureStart(): number
    byteLength: number
    /** What the hash is of, and how much there is: `l=` may cover a part only. */
    bodyHashedBytes: number
    canonicalizedLength: number
  }

  export class DkimVerifier {
    constructor(options: {
      resolver: (name: string, type: string) => Promise<unknown[]>
      sender: string
      strict: boolean
      minBitLength: number
      curTime: Date
    })
    headers: { parsed: HeaderRow[] }
    signatureHeaders: SignatureField[]
    results: SignatureResult[]
    arc: { chain: ArcSet[] | false; lastEntry?: ArcSet; error?: Error; keyCache: unknown }
    messageHeaders(headers: { parsed: HeaderRow[] }): Promise<void>
    /** By canonicalization, hash and `l=`: `relaxed:sha256:`. */
    bodyHashes: Map<string, BodyHash>
    finalChunk(): Promise<void>
  }
}
