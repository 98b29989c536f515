"""The console of `exactlyonce dev`: a page that shows an app on this machine, and breaks it on purpose.

server     serves the page to browsers of this machine, and asks backstage
page.html, console.css, console.js     the page
"""
