/** The only place of the console that asks for the time: milliseconds since 1970. */
export const now = (): number => Date.now()

export const wait = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds))
