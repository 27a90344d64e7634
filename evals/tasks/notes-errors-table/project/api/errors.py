class ApiError(Exception):
    def __init__(self, code, status, text):
        super().__init__(f"{code}: {text}")
        self.code, self.status, self.text = code, status, text
