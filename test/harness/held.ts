/** How long the main thread was busy without a break while `work` ran: processor time, in milliseconds. */
export async function mostHeld(work: () => Promise<unknown>): Promise<number> {
  let most = 0
  let before = spent()
  const timer = setInterval(() => {
    const now = spent()
    most = Math.max(most, now - before)
    before = now
  }, 1)
  try {
    await work()
  } finally {
    clearInterval(timer)
  }
  return Math.max(most, spent() - before)
}

/** Other programs on the machine do not count. */
function spent(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
