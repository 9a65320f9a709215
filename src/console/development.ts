const EVERY_MILLISECONDS = 1000

/** For work on the console itself: loads the page again when its sources changed. */
export function reloadAfterChanges(): void {
  let known: string | undefined
  const look = async () => {
    const version = await versionNow()
    if (known !== undefined && version !== undefined && version !== known) location.reload()
    known = version ?? known
    setTimeout(look, EVERY_MILLISECONDS)
  }
  void look()
}

async function versionNow(): Promise<string | undefined> {
  try {
    const answer = await fetch("/assets/version.txt")
    return answer.ok ? await answer.text() : undefined
  } catch {
    return undefined // the server starts again
  }
}
