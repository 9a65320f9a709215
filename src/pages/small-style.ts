export const smallStyle = `
:root { color-scheme: light dark; --line: #8888; --bad: #b3261e; --go: #1f5fbf }
* { box-sizing: border-box }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif }
main { max-width: 27rem; margin: 8vh auto 2rem; padding: 0 1.25rem }
h1 { font-size: 1.4rem; line-height: 1.25; margin: 0 0 1rem }
label { display: block; margin: 1rem 0 .25rem; font-weight: 600 }
input { width: 100%; padding: .55rem .7rem; font: inherit; border: 1px solid var(--line); border-radius: .4rem }
button { margin: 1.25rem .5rem 0 0; padding: .6rem 1.1rem; font: inherit; font-weight: 600; border: 1px solid var(--line); border-radius: .4rem; cursor: pointer }
button.go { background: var(--go); border-color: var(--go); color: #fff }
.hint { margin: .25rem 0 0; font-size: .875rem; opacity: .75 }
.complaint { padding: .6rem .8rem; border-left: .25rem solid var(--bad) }
code { font-size: .95em; overflow-wrap: anywhere }
dt { font-weight: 600 } dd { margin: 0 0 .5rem; overflow-wrap: anywhere }
:focus-visible { outline: 2px solid var(--go); outline-offset: 2px }
@media (prefers-color-scheme: dark) { :root { --bad: #f2b8b5; --go: #3f7fe0 } }
`
