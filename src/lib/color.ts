/** Red, green and blue, each 0 to 255. */
export type Color = readonly [red: number, green: number, blue: number]

/** The sixteen names of HTML 4 and what mail uses beside them. */
const NAMES: Record<string, Color> = {
  black: [0, 0, 0],
  silver: [192, 192, 192],
  gray: [128, 128, 128],
  grey: [128, 128, 128],
  white: [255, 255, 255],
  maroon: [128, 0, 0],
  red: [255, 0, 0],
  purple: [128, 0, 128],
  fuchsia: [255, 0, 255],
  green: [0, 128, 0],
  lime: [0, 255, 0],
  olive: [128, 128, 0],
  yellow: [255, 255, 0],
  navy: [0, 0, 128],
  blue: [0, 0, 255],
  teal: [0, 128, 128],
  aqua: [0, 255, 255],
  orange: [255, 165, 0],
  lightgray: [211, 211, 211],
  lightgrey: [211, 211, 211],
  darkgray: [169, 169, 169],
  darkgrey: [169, 169, 169],
  whitesmoke: [245, 245, 245],
}

/** A CSS color in hex, `rgb()` or a usual name; undefined for any other, transparent ones included. */
export function parseColor(value: string | undefined): Color | undefined {
  const text = value?.trim().toLowerCase() ?? ""
  if (Object.hasOwn(NAMES, text)) return NAMES[text]
  const hex = /^#?([0-9a-f]{6}|[0-9a-f]{3})$/.exec(text)?.[1]
  if (hex) return fromHex(hex.length === 3 ? [...hex].map((digit) => digit + digit).join("") : hex)
  const parts = /^rgb\(\s*(\d{1,3})\s*[, ]\s*(\d{1,3})\s*[, ]\s*(\d{1,3})\s*\)$/.exec(text)
  if (!parts) return undefined
  const [red = 0, green = 0, blue = 0] = parts.slice(1).map((part) => Math.min(255, Number(part)))
  return [red, green, blue]
}

function fromHex(hex: string): Color {
  const value = Number.parseInt(hex, 16)
  return [value >> 16, (value >> 8) & 0xff, value & 0xff]
}

/** Contrast ratio of two colors, 1 to 21 (WCAG 2.2, "contrast ratio"). */
export function contrast(one: Color, other: Color): number {
  const [lighter = 0, darker = 0] = [luminance(one), luminance(other)].sort((a, b) => b - a)
  return (lighter + 0.05) / (darker + 0.05)
}

/** WCAG 2.2, "relative luminance". */
function luminance(color: Color): number {
  const [red = 0, green = 0, blue = 0] = color.map((part) => {
    const share = part / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
