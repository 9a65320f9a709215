/** What answers had that the published description does not tell, since the last test ended. */
const untold: string[] = []

/** Remembers them for the end of the test that is running. */
export function remember(faults: string[]) {
  untold.push(...faults)
}

/** Throws what was remembered, so that the test which saw it fails. */
export function requireTold() {
  const all = [...new Set(untold.splice(0))]
  if (all.length > 0) throw new Error(`not as published:\n${all.join("\n")}`)
}
