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
      "content-disposition": `attachment; filename*=UTF-8''${extValue(filename)}`,
      "x-content-type-options": "nosniff",
    },
  })

/** RFC 8187, 3.2.1: four characters that a URL may hold are no part of such a value. */
const extValue = (text: string) =>
  encodeURIComponent(text).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
