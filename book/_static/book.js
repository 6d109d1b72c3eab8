// Mends of the theme and print: see below.
