/** A stored message as its own media type (RFC 822 bytes, untouched). */
export const message = (bytes: Uint8Array) =>
  new Response(bytes as Uint8Array<ArrayBuffer>, {
    headers: { "content-type": "message/rfc822", "x-content-type-options": "nosniff" },
  })

interface StoredFile {
  filename: string
  content_type: string
  bytes: Uint8Array
}

/** Always as a download: what a stranger attached must not run in our origin. */
export const file = ({ filename, content_type, bytes }: StoredFile) =>
  new Response(bytes as Uint8Array<ArrayBuffer>, {
    headers: {
      "content-type": content_type,
      "content-disposition": `attachment; filename*=UTF-8''${encodeURIComponent(filename)}`,
      "x-content-type-options": "nosniff",
    },
  })
