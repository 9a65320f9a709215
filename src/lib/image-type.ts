const SIGNATURES: [type: string, at: number, bytes: string][] = [
  ["image/png", 0, "\x89PNG\r\n\x1a\n"],
  ["image/jpeg", 0, "\xff\xd8\xff"],
  ["image/gif", 0, "GIF87a"],
  ["image/gif", 0, "GIF89a"],
  ["image/webp", 8, "WEBP"],
  ["image/avif", 4, "ftypavif"],
  ["image/bmp", 0, "BM"],
]

/**
 * The type of an image by its first bytes, whatever its sender says. Undefined for everything else. An SVG
 * is no image here: it is a document.
 */
export function imageType(content: Uint8Array): string | undefined {
  const begin = String.fromCharCode(...content.subarray(0, 16))
  return SIGNATURES.find(([, at, bytes]) => begin.startsWith(bytes, at))?.[0]
}
