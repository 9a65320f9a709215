import { expect, test } from "bun:test"
import { imageType } from "../../src/lib/image-type"

const bytes = (text: string) => Uint8Array.from(text, (char) => char.charCodeAt(0))

test("an image is known by its first bytes", () => {
  expect(imageType(bytes("\x89PNG\r\n\x1a\nrest of it"))).toBe("image/png")
  expect(imageType(bytes("\xff\xd8\xff\xe0\0\x10JFIF"))).toBe("image/jpeg")
  expect(imageType(bytes("GIF89a.........."))).toBe("image/gif")
  expect(imageType(bytes("RIFF\x01\x02\x03\x04WEBPVP8 "))).toBe("image/webp")
})

test("what could run is no image", () => {
  for (const text of ["<svg onload=alert(1)>", "<html>", "%PDF-1.7", "", "PNG"]) {
    expect(imageType(bytes(text))).toBeUndefined()
  }
})
