/* SPDX-License-Identifier: MIT */
/* html_page.S: the page that reports are put into, as it was built (html/dist/report.html). */
	.section .rodata.mw_html_page, "a", @progbits
	.globl	mw_html_page
	.type	mw_html_page, @object
mw_html_page:
	.incbin	"report.html"
1:
	.byte	0
	.size	mw_html_page, . - mw_html_page
	.balign 8
	.globl	mw_html_page_size
	.type	mw_html_page_size, @object
mw_html_page_size:
	.quad	1b - mw_html_page
	.size	mw_html_page_size, 8
	.section .note.GNU-stack, "", @progbits
