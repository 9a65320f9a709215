import { crc32, deflateSync } from "node:zlib"

/** A picture of at most 256 colours. */
export interface PalettePicture {
  width: number
  height: number
  /** Red, green and blue of each colour. */
  palette: Uint8Array
  /** The number of the colour of each pixel, row by row. */
  pixels: Uint8Array
}

/** The octets of a PNG file (ISO/IEC 15948) with a byte for each pixel, compressed as well as it goes. */
export function palettePng({ width, height, palette, pixels }: PalettePicture): Uint8Array {
  const size = Buffer.alloc(13)
  size.writeUInt32BE(width, 0)
  size.writeUInt32BE(height, 4)
  size.set([8, 3], 8) // bits of a pixel; indexed colour
  const rows = Buffer.alloc((width + 1) * height) // each begins with its filter, which is 0: none
  for (let y = 0; y < height; y++)
    rows.set(pixels.subarray(y * width, (y + 1) * width), y * (width + 1) + 1)
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk("IHDR", size),
    chunk("PLTE", palette),
    chunk("IDAT", deflateSync(rows, { level: 9 })),
    chunk("IEND", new Uint8Array()),
  ])
}

function chunk(name: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(name), data])
  const frame = Buffer.alloc(body.length + 8)
  frame.writeUInt32BE(data.length, 0)
  frame.set(body, 4)
  frame.writeUInt32BE(crc32(body), body.length + 4)
  return frame
}
