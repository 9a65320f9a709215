import { asDownload } from "../lib/file-names"

/** A stored message as its own media type (RFC 822 bytes, untouched). */
export const rawMessage = (bytes: Uint8Array) =>
  new Response(bytes as Uint8Array<ArrayBuffer>, {
    headers: { "content-type": "message/rfc822", "x-content-type-options": "nosniff" },
  })

interface Download {
  filename: string
  content_type: string
  bytes: Uint8Array
}

/** Always as a download: what a stranger attached must not run in our origin. */
export const download = ({ filename, content_type, bytes }: Download) =>
  new Response(bytes as Uint8Array<ArrayBuffer>, {
    headers: {
      "content-type": content_type,
      "content-disposition": asDownload(filename),
      "content-security-policy": "sandbox; default-src 'none'",
      "cache-control": "private, no-store",
      "x-content-type-options": "nosniff",
    },
  })
