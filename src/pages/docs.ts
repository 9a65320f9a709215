export const docsPage = (_: object) => new Response("")
