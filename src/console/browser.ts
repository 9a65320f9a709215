/** Puts the text on the clipboard. False where the browser refuses, as without TLS on another host. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return false
  }
}

/** Offers bytes as a download. What the browser shows itself could run; this never does. */
export function saveBytes(bytes: Uint8Array, name: string, type: string): void {
  const url = URL.createObjectURL(new Blob([bytes as Uint8Array<ArrayBuffer>], { type }))
  const link = document.createElement("a")
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}

/** `up` is a laptop's own server with one project; the shell of the page says which it is. */
export function serverMode(): "up" | "serve" {
  const meta = document.querySelector<HTMLMetaElement>("meta[name=belfry-mode]")
  return meta?.content === "up" ? "up" : "serve"
}
