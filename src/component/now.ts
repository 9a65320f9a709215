/** The time of this device, in epoch milliseconds. */
export const now = (): number => Date.now()
