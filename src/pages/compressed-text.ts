import { promisify } from "node:util"
import { brotliCompress, constants, gzip } from "node:zlib"

/** A text as it is kept and sent: nothing is compressed while somebody waits for an answer. */
export interface CompressedText {
  brotli: Blob
  gzip: Blob
  etag: string
}

/**
 * Compresses on threads of the runtime, so that other requests are answered meanwhile. The quality is that of brotli,
 * from 0 to 11.
 */
export async function compressedText(text: string, quality: number): Promise<CompressedText> {
  const bytes = Buffer.from(text)
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: quality,
    [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
  }
  const [small, usual] = await Promise.all([
    promisify(brotliCompress)(bytes, { params }),
    promisify(gzip)(bytes, { level: 9 }),
  ])
  const digest = new Bun.CryptoHasher("sha256").update(bytes).digest("base64url")
  return { brotli: blobOf(small), gzip: blobOf(usual), etag: `"${digest.slice(0, 22)}"` }
}

const blobOf = (bytes: Buffer) => new Blob([new Uint8Array(bytes)])

export const plainText = async ({ gzip: packed }: CompressedText): Promise<string> =>
  Buffer.from(Bun.gunzipSync(await packed.bytes())).toString()

/** Answers in the best coding that the client takes (RFC 9110, 12.5.3), or with 304 for what it has. */
export async function compressedAnswer(
  request: Request,
  text: CompressedText,
  own: Record<string, string>,
): Promise<Response> {
  const headers = { ...own, etag: text.etag, vary: "accept-encoding" }
  if (request.headers.get("if-none-match")?.includes(text.etag))
    return new Response(null, { status: 304, headers })
  const accepted = request.headers.get("accept-encoding")
  if (takesCoding(accepted, "br"))
    return new Response(text.brotli, { headers: { ...headers, "content-encoding": "br" } })
  if (takesCoding(accepted, "gzip"))
    return new Response(text.gzip, { headers: { ...headers, "content-encoding": "gzip" } })
  return new Response(Bun.gunzipSync(await text.gzip.bytes()), { headers })
}

/**
 * Whether a client takes a coding such as `br` (RFC 9110, 12.5.3): its own entry in `Accept-Encoding` counts,
 * else that of `*`. With the weight 0 a coding is refused. Without the field nothing is compressed.
 */
export function takesCoding(accept_encoding: string | null, coding: string): boolean {
  const weights = new Map(
    (accept_encoding ?? "").split(",").map((entry): [string, number] => {
      const [name = "", ...parameters] = entry.toLowerCase().split(";")
      const [, weight = "1"] = /^\s*q=([\d.]+)/.exec(parameters.join(";")) ?? []
      return [name.trim(), Number(weight)]
    }),
  )
  return (weights.get(coding) ?? weights.get("*") ?? 0) > 0
}
