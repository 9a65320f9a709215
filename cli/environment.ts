/** The one place where the command line reads the environment. */
export const environment: Record<string, string | undefined> = process.env
