/** Red, green and blue, each 0 to 255. */
export type Color = readonly [red: number, green: number, blue: number]

/** A CSS color, or the six digits that old attributes have; undefined for a transparent one, and for other words. */
export function parseColor(value: string | undefined): Color | undefined {
  const text = value?.trim().toLowerCase() ?? ""
  const color = /^(?:[0-9a-f]{3}){1,2}$/.test(text) ? `#${text}` : text
  const [red = 0, green = 0, blue = 0, opacity = 0] = Bun.color(color, "[rgba]") ?? []
  return opacity === 255 ? [red, green, blue] : undefined
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
