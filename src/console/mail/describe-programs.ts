/** `Gmail (webmail, iOS), Outlook.com`: programs with the systems of each in one bracket, in their order. */
export function programsText(names: readonly string[]): string {
  const systems = new Map<string, string[]>()
  for (const name of names) {
    const [, program = name, system] = /^(.+) \(([^()]+)\)$/.exec(name) ?? []
    const known = systems.get(program) ?? []
    systems.set(program, system === undefined ? known : [...known, system])
  }
  return [...systems]
    .map(([program, found]) => (found.length > 0 ? `${program} (${found.join(", ")})` : program))
    .join(", ")
}
