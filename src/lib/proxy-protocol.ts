import ipaddr from "ipaddr.js"

/**
 * What the first bytes of a connection say (HAProxy's PROXY protocol, versions 1 and 2):
 * `more` where the header is not complete, `bad` where it is none, `done` with its length. The
 * client is undefined where the proxy speaks for itself (`UNKNOWN`, `LOCAL`).
 */
type ProxyHeader =
  | { state: "more" }
  | { state: "bad"; reason: string }
  | { state: "done"; length: number; client: { address: string; port: number } | undefined }

/** RFC-like limit of the protocol's text: 107 bytes with its line end. */
const MOST_V1_BYTES = 107
const V2_SIGNATURE = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1")
const V2_HEAD_BYTES = 16
/** The protocol allows 64 KB of extensions; a proxy sends some hundred bytes. */
const MOST_V2_BYTES = 4096

const bad = (reason: string): ProxyHeader => ({ state: "bad", reason })

/** Reads the header at the start of what was received until now. Never throws. */
export function readProxyHeader(bytes: Buffer): ProxyHeader {
  if (bytes.length === 0) return { state: "more" }
  const v2 = bytes.subarray(0, V2_SIGNATURE.length)
  if (v2.equals(V2_SIGNATURE.subarray(0, v2.length))) {
    return v2.length < V2_SIGNATURE.length ? { state: "more" } : readV2(bytes)
  }
  const v1 = bytes.subarray(0, 6).toString("latin1")
  if (!"PROXY ".startsWith(v1)) return bad("The connection does not begin with a PROXY header")
  return readV1(bytes)
}

function readV1(bytes: Buffer): ProxyHeader {
  const end = bytes.subarray(0, MOST_V1_BYTES).indexOf("\r\n")
  if (end === -1) {
    return bytes.length < MOST_V1_BYTES ? { state: "more" } : bad("The PROXY line is too long")
  }
  const length = end + 2
  const [, family, ...rest] = bytes.toString("latin1", 0, end).split(" ")
  if (family === "UNKNOWN") return { state: "done", length, client: undefined }
  const [source = "", target = "", source_port = "", target_port = "", ...more] = rest
  const has_addresses = [source, target].every((text) => isOfFamily(text, family))
  if (!has_addresses || more.length > 0) return bad("The PROXY line names no addresses")
  if (![source_port, target_port].every(isPort)) return bad("The PROXY line names no ports")
  return { state: "done", length, client: { address: plain(source), port: Number(source_port) } }
}

function isOfFamily(text: string, family: string | undefined): boolean {
  if (family === "TCP4") return ipaddr.IPv4.isValidFourPartDecimal(text)
  return family === "TCP6" && !text.includes("%") && ipaddr.IPv6.isValid(text)
}

const isPort = (text: string) => /^(0|[1-9]\d{0,4})$/.test(text) && Number(text) <= 65_535

function readV2(bytes: Buffer): ProxyHeader {
  if (bytes.length < V2_HEAD_BYTES) return { state: "more" }
  const [version_command = 0, family = 0] = bytes.subarray(V2_SIGNATURE.length)
  const length = V2_HEAD_BYTES + bytes.readUInt16BE(14)
  if (version_command >> 4 !== 2) return bad("The PROXY header has an unknown version")
  const command = version_command & 0x0f
  if (command > 1) return bad("The PROXY header has an unknown command")
  if (length > MOST_V2_BYTES) return bad("The PROXY header is too long")
  if (bytes.length < length) return { state: "more" }
  if (command === 0 || family >> 4 === 0) return { state: "done", length, client: undefined }
  const size = { 17: 4, 33: 16 }[family]
  if (size === undefined) return bad("The PROXY header is not of TCP over IPv4 or IPv6")
  if (length < V2_HEAD_BYTES + 2 * size + 4) return bad("The PROXY header is too short")
  const source = bytes.subarray(V2_HEAD_BYTES, V2_HEAD_BYTES + size)
  const address = ipaddr.fromByteArray([...source]).toString()
  const port = bytes.readUInt16BE(V2_HEAD_BYTES + 2 * size)
  return { state: "done", length, client: { address: plain(address), port } }
}

/** An IPv4-mapped address is the IPv4 address that it holds. */
const plain = (address: string) => ipaddr.process(address).toString()
