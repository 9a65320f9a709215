/** Puts the text on the clipboard. False where the browser refuses, as without TLS on another host. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return false
  }
}
