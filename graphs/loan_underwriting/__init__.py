"""Loan underwriting: documents are read, the bureau is asked, a policy scores, people decide what is not clear."""
