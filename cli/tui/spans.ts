/** `38 ms`, `2.4 s`, `3 min`, `2 h`, `4 d`. */
export function spanText(milliseconds: number): string {
  const size = Math.max(0, milliseconds)
  if (size < 1000) return `${Math.round(size)} ms`
  if (size < 10_000) return `${(size / 1000).toFixed(1)} s`
  if (size < 60_000) return `${Math.floor(size / 1000)} s`
  if (size < 3_600_000) return `${Math.floor(size / 60_000)} min`
  if (size < 86_400_000) return `${Math.floor(size / 3_600_000)} h`
  return `${Math.floor(size / 86_400_000)} d`
}

/** `3 s`, `12 min`: an age need not be as exact as what something took. */
export const ageText = (seconds: number): string =>
  seconds < 60 ? `${Math.round(seconds)} s` : spanText(seconds * 1000)

/** `in 58 s`, `now`, or nothing where there is no time. */
export function until(iso: string | null | undefined, now: number): string {
  if (!iso) return ""
  const left = Date.parse(iso) - now
  return left > 0 ? `in ${ageText(Math.ceil(left / 1000))}` : "now"
}

export const number = (value: number): string => Math.round(value).toLocaleString("en")

/** Two digits that mean something: `0.7 %`, `0.01 %`, `12 %`. */
export function percent(part: number, whole: number): string {
  const share = whole === 0 ? 0 : (100 * part) / whole
  const digits = share === 0 || share >= 10 ? 0 : share >= 0.1 ? 1 : 2
  return `${share.toFixed(digits)} %`
}
